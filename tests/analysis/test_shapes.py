"""Secrets that a check of the value finds, and numbers that look alike and stay."""

import pytest

from redmeter.analysis.text.secrets import mask
from redmeter.testing import MemoryMeter

SECRETS = [
    ('{"auths":{"a.io":{"auth":"Ym9iOmh1bnRlcjI="}}}', "Ym9iOmh1bnRlcjI="),
    ("GET /reset/aB3dE5fG7hI9jK1lM3 HTTP/1.1", "aB3dE5fG7hI9jK1lM3"),
    ("https://a.io/password-reset/MTc/c4h2x8-3f9a0b1c2d3e4f5a", "c4h2x8-3f9a0b1c2d3e4f5a"),
    ("/accounts/confirm-email/key/5f3a9b8c7d6e5f4a3b2c/", "5f3a9b8c7d6e5f4a3b2c"),
    ("/invite/aB3dE5fG7h", "aB3dE5fG7h"),
    ("verification code: 482913", "482913"),
    ("your login code is 482 913", "482 913"),
    ("one-time password 482913 sent", "482913"),
    ("OTP for user 17: 482913", "482913"),
    ("otp_code=4829", "4829"),
    ("482913 is your Example login code", "482913"),
    ("card 4111 1111 1111 1111 declined", "4111 1111 1111 1111"),
    ("card=5500-0000-0000-0004", "5500-0000-0000-0004"),
    ("paid by 378282246310005.", "378282246310005"),
    ("transfer to DE89370400440532013000", "DE89370400440532013000"),
    ("iban GB82 WEST 1234 5698 7654 32 ok", "GB82 WEST 1234 5698 7654 32"),
    ("GET /cb?code=abc123&state=x", "abc123"),
    ("GET /cb?state=x&code=4/0AX4XfWh-abc", "4/0AX4XfWh-abc"),
    ("login with password[hunter2] failed", "hunter2"),
    ("password -> hunter2", "hunter2"),
    ("secret ~> hunter2", "hunter2"),
    ('<Password Type="PasswordText">hunter2</Password>', "hunter2"),
    ('<wsse:Password\n Type="x">hunter2</wsse:Password>', "hunter2"),
    ("key sk-proj-abcDEF123456abcDEF123456 was refused", "sk-proj-abcDEF123456abcDEF123456"),
    ("curl -u bob:hunter2 https://a.io", "hunter2"),
]
HARMLESS = [
    "order 4111111111111112 is paid",
    "id 1700000000000 of 1234567890123456",
    "span 4111111111111111222",
    "build 4111-1111-1111-1111-22",
    "DE89370400440532013001",
    "error code: 482913",
    "exit code 137, status code 404",
    "GET /a?code=404&x=1",
    "the verification code is wrong, attempt 3",
    "the code 482913 is unknown",
    "GET /reset/all HTTP/1.1",
    "POST /api/confirm/orders-of-yesterday",
    "/verify/configuration/files",
    '{"auth": "required", "mode": "basic"}',
    "password[0]",
    "0000 0000 0000 0000",
    "2024-01-02 03:04:05.678901 4444 3333",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_masked_and_nothing_else(text: str, secret: str) -> None:
    """Once: masked text stays as it is."""
    masked = mask(text)
    assert masked == text.replace(secret, "***")
    assert mask(masked) == masked
    assert mask(f"one {text} two") == f"one {masked} two"


@pytest.mark.parametrize("text", HARMLESS)
def test_other_numbers_and_words_stay(text: str) -> None:
    """The same object, as nothing was found."""
    assert mask(text) is text


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_exceptions_are_masked_in_message_and_traceback(text: str, secret: str) -> None:
    """In the text of the error, and in a source line."""
    with MemoryMeter() as meter:
        try:
            raise ValueError(text)
        except ValueError as error:
            meter.record_exception(error)
        (group,) = meter.exceptions().groups
        newest = meter.exception(group.id)
        assert newest is not None
        assert secret not in newest.message + newest.traceback
        assert "raise ValueError(text)" in newest.traceback


@pytest.mark.parametrize(
    "part", ["/reset/", "4111 ", "DE89 3704 ", "?code=", "password[", "</", "otp "]
)
def test_time_is_linear_in_the_length(part: str) -> None:
    """A text of one part, repeated: it ends at all."""
    assert len(mask(part * 20_000)) >= 20_000
