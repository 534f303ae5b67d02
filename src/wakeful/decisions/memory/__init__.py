"""What an agent's memory comes to, decided from records alone: working memory and episodes."""
