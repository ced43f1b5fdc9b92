import pytest


def test_failing():
    assert 1 == 2


@pytest.fixture
def broken():
    raise ValueError


def test_failing_fixture(broken):
    pass
