"""Codecs: how gradients are made fewer bytes before they are sent."""
