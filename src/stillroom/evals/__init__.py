"""What a release is worth: facts kept, texts that read well, strings that must not be there."""
