"""The program for a subject's device, and its checks.

``device.py`` is a complete program that imports nothing from this package: copy it to a device.
``checks.py`` loads the ``device.py`` next to it, and checks conformance files and ledger exports.
"""
