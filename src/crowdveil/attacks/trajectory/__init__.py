"""Adversaries who know where somebody was; one file each."""
