"""Text that any terminal can print: names in files, and of files, may hold anything."""


def printable(text: str, kept: str = "\n") -> str:
    r"""Return text with what would steer a terminal as its escape, such as `\x1b`.

    The characters in `kept` stay, though they are none that print.
    """
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if plain.isprintable():
        return plain
    return "".join(
        each if each.isprintable() or each in kept else f"\\x{ord(each):02x}" for each in plain
    )
