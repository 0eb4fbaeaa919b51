"""From an event of a recording to its line, few functions and no way back."""

from tools import rooms

MOST_FUNCTIONS, MOST_ROOMS = 12, 6


def test_an_event_goes_through_few_hands_and_never_back_into_a_room():
    way = rooms.of_an_event()
    stays = [room for n, (room, _) in enumerate(way) if not n or way[n - 1][0] != room]
    assert len(way) <= MOST_FUNCTIONS
    assert len(stays) == len(set(stays)) <= MOST_ROOMS
    assert (way[0][0], way[-1][0]) == ("profiles", "output")


def test_a_way_back_is_counted(capsys):
    rooms.show([("profiles", "a"), ("output", "b"), ("profiles", "c")])
    assert capsys.readouterr().out.endswith("3 functions, 2 rooms, 1 returns\n")
