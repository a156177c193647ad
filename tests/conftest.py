"""One Hypothesis profile: no deadline, because machines differ."""

from hypothesis import settings

settings.register_profile("expost", deadline=None, print_blob=True)
settings.load_profile("expost")
