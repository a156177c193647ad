"""Some hundreds of transcripts, decisions, certificates and command lines, and what came of them.

A change that is meant to leave the results alone leaves these as they are. Nothing here knows how
the package is laid out but ``running`` and ``playing``, each by its first lines.
"""
