"""Workers: processes that run jobs and open uploads."""
