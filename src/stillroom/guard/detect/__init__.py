"""What may identify in a text: many detectors, one union, and the whole sentence where one of them fails."""
