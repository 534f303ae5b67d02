"""A model that says what it was told to say: from a list, a function, or a YAML or JSON file.

It is a provider like any other (streaming or not, parallel calls, reasoning, usage, delays, failures on cue) and needs
no key and no network. `schema` says what a step may hold, `loading` reads files, `steps` makes replies of them once,
`model` gives them. What watches whether a test used up its script is in `wakeful.testing`.
"""

from wakeful.providers.scripted.model import ScriptedModel, scripted_from_reference

__all__ = ["ScriptedModel", "scripted_from_reference"]
