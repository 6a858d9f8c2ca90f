"""The value that a stand-in's code returns for a call that it does not handle."""

DECLINED = object()
