"""Baselines: methods of the literature to compare with, one self-contained file each; nothing else imports them."""
