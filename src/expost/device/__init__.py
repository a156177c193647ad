"""What runs on a subject's device.

``device.py`` is a program of its own, which imports nothing of this package: copy it to a device.
``checks.py`` loads it from beside itself, and checks conformance files and exports of ledgers.
"""
