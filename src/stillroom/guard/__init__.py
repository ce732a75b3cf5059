"""The guard: what of a retrieved passage may be shown to whom, and the books of it (DESIGN section 5)."""
