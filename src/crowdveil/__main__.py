"""Run the command line: `python -m crowdveil`."""

from __future__ import annotations

from crowdveil.cli.main import main

if __name__ == "__main__":
    main()
