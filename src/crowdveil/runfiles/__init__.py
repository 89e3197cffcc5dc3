"""Run files: ours and mdl-anonymizer's."""
