"""Programs that bring their own loop, tools or chat, as tests need them."""
