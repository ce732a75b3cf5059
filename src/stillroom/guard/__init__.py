"""Retrieved context made safe for the query at hand: find what may identify, replace it, keep the books."""
