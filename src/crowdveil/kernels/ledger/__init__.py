"""Kernels of the audit of several releases."""
