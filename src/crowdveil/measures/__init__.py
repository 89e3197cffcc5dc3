"""What was lost: one file a measure, or a family of close ones. The registry lists them."""
