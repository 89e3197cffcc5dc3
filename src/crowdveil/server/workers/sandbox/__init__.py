"""The sandbox of a process that opens files of strangers: it sees its own folder and the installation alone.

Landlock lets it open files there only, seccomp lets it make no socket and no process, limits bound its memory, time and
files, and its environment holds nothing of the service's. `confine` puts all of it on, for good. It imports little, so
that such a process starts in no time.
"""
