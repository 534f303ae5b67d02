"""Tool declarations as hosts write them."""
