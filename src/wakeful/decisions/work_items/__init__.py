"""Work items, decided: whether one may be worked on, what a prompt shows of them, what a turn's end and a completion do
to them, when the model is reminded, and whether there is work for an idle agent. Pure."""
