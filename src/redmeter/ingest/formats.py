r"""The formats of logs: a table, name -> how its lines are read, and one of them as an example.

A row is all that a format is. Three kinds of rows share their readers:

- Text: an expression with the groups `request`, or `method` and `path`, and `status`; `time`, or
  `date` and `clock`; `size`; and the duration. The duration's group is named after its unit, `s`,
  `ms` or `us`, or `amount` if the text has one (2ms). Numbered ones, `s1`, `s2`, are summed.
- JSON and key=value pairs: the names of the values, with the unit of the duration: see entries.py.
- Readers that remember earlier lines: W3C logs and Rails.

Rows are tried in this order, so those that recognize fewer lines come first. Nothing is read from a
line but time, request, status, size and duration; other fields are ignored.

Bound: expressions take time proportional to a line's length. Sources: the documentation of each
server; the examples are our own.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from redmeter.ingest import access_log
from redmeter.ingest.access_log import (
    LINE_LIMIT,
    OTHER_FORMAT,
    Hit,
    MalformedLine,
    log_time,
    method_of,
    path_of,
    request_of,
)
from redmeter.ingest.entries import (
    EntryFields,
    Parse,
    W3CReader,
    digits,
    duration_of,
    http_status,
    json_lines,
    key_value_lines,
)
from redmeter.ingest.rails import RailsReader


class LogFormat(NamedTuple):
    """How the lines of a log are read."""

    #: The servers that write it.
    servers: str
    #: Makes the reader of one log: it gets the lines in order, so it may remember some.
    reader: Callable[[], Parse]
    #: A line, or the lines that it takes.
    example: str
    #: What a line must contain for its log to be recognized, if not every line that can be read.
    mark: re.Pattern[str] | None = None


_UNIT = re.compile(r"(s|ms|us|ns|amount)\d?")


def text_lines(pattern: str | re.Pattern[str], when: Callable[[str], float] = log_time) -> Parse:
    """Return a reader of lines that an expression describes.

    Args:
        pattern: its groups are described above.
        when: reads the time.
    """
    expression = re.compile(pattern, re.ASCII | re.VERBOSE | re.DOTALL)
    units = {
        name: match[1].replace("amount", "s")
        for name in expression.groupindex
        if (match := _UNIT.fullmatch(name))
    }

    groups = expression.groupindex
    timed, targeted, sized = (name in groups for name in ("time", "request", "size"))
    moment = [name for name in ("date", "clock") if name in groups]

    def parse(line: str) -> Hit:
        match = expression.search(line, 0, LINE_LIMIT)
        if match is None:
            raise MalformedLine(OTHER_FORMAT)
        part = match.group
        time = part("time") if timed else " ".join(part(name) for name in moment)
        if targeted:
            method, path = request_of(part("request"))
        else:
            method, path = method_of(part("method") or ""), path_of(part("path") or "")
        code = part("status")
        if not code or code == "-":
            raise MalformedLine("no status")
        size = digits(part("size")) if sized else ""
        seconds = [duration_of(part(name), unit) for name, unit in units.items()]
        known = [each for each in seconds if each is not None]
        return Hit(
            when(time) if time else math.nan,
            method,
            path,
            http_status(code),
            int(size) if size else None,
            round(math.fsum(known), 9) if known and len(known) == len(seconds) else None,
        )

    return parse


# Parts of expressions. In these, a space is written \x20, since they are verbose.
_REQUEST = r'"(?P<request>[^"\\]*+(?:\\.[^"\\]*+)*+)"'
_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STATUS = r"(?P<status>[1-5]\d\d)"
_CLF = r"\[(?P<time>\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d\ [+-]\d{4})\]"
_COMMON = rf"{_CLF}\ {_REQUEST}\ {_STATUS}\ (?P<size>\S+)"
_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?"
_COMBINED = re.compile(rf"\] {_TEXT} [1-5]\d\d (?:\d+|-) {_TEXT} {_TEXT}", re.ASCII | re.DOTALL)


def _text(pattern: str) -> Callable[[], Parse]:
    return lambda: text_lines(pattern)


def _json(fields: EntryFields, *required: str) -> Callable[[], Parse]:
    return lambda: json_lines(fields, *required)


def _pairs(fields: EntryFields, *required: str) -> Callable[[], Parse]:
    return lambda: key_value_lines(fields, *required, before=re.compile(rf"(?<!\S)\[?({_ISO})"))


def _w3c(unit: str, *marks: str) -> Callable[[], Parse]:
    return lambda: W3CReader(unit, marks or ("",)).parse_hit


#: The usual names in JSON. A duration has a unit in its name, or is nginx's request_time.
USUAL: Final = EntryFields(
    time=(
        *("time", "timestamp", "@timestamp", "time_iso8601", "time_local", "ts", "msec"),
        *("date", "datetime", "start_time", "requestTime", "eventTime"),
    ),
    request=("request", "request_line", "requestLine"),
    method=(
        *("method", "request_method", "request.method", "http_method", "httpMethod"),
        *("requestMethod", "req.method", "verb"),
    ),
    path=(
        *("request_uri", "path", "uri", "url", "request.uri", "request.url", "request.path"),
        *("requestUri", "requestUrl", "request_path", "http_path", "req.url"),
    ),
    status=(
        *("status", "status_code", "statusCode", "response_code", "http_status", "response.status"),
        "res.statusCode",
    ),
    size=("size", "bytes", "body_bytes_sent", "bytes_sent", "response_size", "bytesSent"),
    seconds={
        "request_time": "s",
        **{
            f"{name}{mark}": unit
            for name in ("duration", "latency", "elapsed", "response_time", "request_time", "took")
            for mark, unit in {
                "_s": "s",
                "_seconds": "s",
                "_sec": "s",
                "_ms": "ms",
                "_millis": "ms",
                "_us": "us",
                "_micros": "us",
                "_ns": "ns",
                "_nanos": "ns",
            }.items()
        },
        "durationMs": "ms",
        "latencyMs": "ms",
        "responseTimeMs": "ms",
        "elapsedMs": "ms",
        "durationMillis": "ms",
        "durationSeconds": "s",
    },
)
_AZURE_TIME: Final = ("time", "timeStamp", "TimeGenerated")

#: Name -> format.
FORMATS: Final[Mapping[str, LogFormat]] = {
    "alb": LogFormat(
        "AWS Application Load Balancer",
        # The times of the request's way to the target, the target, and the way back.
        _text(
            r"^(?:https?|h2|grpcs?|wss?)\ (?P<time>\S+)\ \S+\ \S+\ \S+"
            r"\ (?P<s1>\S+)\ (?P<s2>\S+)\ (?P<s3>\S+)\ (?P<status>\S+)\ \S+\ \S+\ (?P<size>\S+)\ "
            rf"{_REQUEST}"
        ),
        "https 2026-10-10T13:55:36.186641Z app/web/50dc 192.0.2.10:2817 10.0.0.1:80 0.001 0.048 "
        '0.002 200 200 34 57 "GET https://shop.example:443/items/9 HTTP/1.1" "curl/8.5.0" - - '
        'arn:aws:x "Root=1-58" "shop.example" "-" 0 2026-10-10T13:55:36.135000Z "forward" "-" "-"',
    ),
    "elb": LogFormat(
        "AWS Classic Load Balancer",
        _text(
            rf"^(?P<time>{_ISO})\ \S+\ \S+:\d+\ \S+\ (?P<s1>\S+)\ (?P<s2>\S+)\ (?P<s3>\S+)"
            rf"\ (?P<status>\S+)\ \S+\ \S+\ (?P<size>\S+)\ {_REQUEST}"
        ),
        "2026-10-10T13:55:36.945958Z web 192.0.2.10:2817 10.0.0.1:80 0.000073 0.001048 0.000057 "
        '200 200 0 29 "GET http://shop.example:80/items/9 HTTP/1.1" "curl/8.5.0" - -',
    ),
    "s3": LogFormat(
        "Amazon S3",
        _text(
            rf"^\S+\ \S+\ {_CLF}\ \S+\ \S+\ \S+\ [A-Z]+\.[A-Z]+\.?\S*\ \S+\ {_REQUEST}"
            r"\ (?P<status>\S+)\ \S+\ (?P<size>\S+)\ \S+\ (?P<ms>\S+)\ "
        ),
        "79a5 shop-files [10/Oct/2026:13:55:36 +0000] 192.0.2.10 - 3E57427F REST.GET.OBJECT a.png "
        '"GET /a.png HTTP/1.1" 200 - 2662 2662 70 10 "-" "curl/8.5.0" -',
    ),
    "haproxy": LogFormat(
        "HAProxy (option httplog)",
        _text(
            r"\[(?P<time>\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d\.\d+)\]\ \S+\ \S+\ (?:-?\d+/){4}"
            rf"(?P<ms>\+?-?\d+)\ (?P<status>\S+)\ \+?(?P<size>\d+)\ [^\"\\]*+{_REQUEST}"
        ),
        "Oct 10 13:55:36 lb haproxy[14389]: 192.0.2.10:33317 [10/Oct/2026:13:55:36.655] http-in "
        'static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET /items/9 HTTP/1.1"',
    ),
    "envoy": LogFormat(
        "Envoy, Istio",
        # Istio has details of the response between the flags and the bytes.
        _text(
            rf"\[(?P<time>{_ISO})\]\ {_REQUEST}\ (?P<status>\d+)\ \S+(?:\ \S+\ \S+\ {_TEXT})?"
            r"\ \d+\ (?P<size>\d+)\ (?P<ms>\d+)\ "
        ),
        '[2026-10-10T13:55:36.310Z] "GET /items/9 HTTP/2" 200 - 0 154 226 100 "192.0.2.10" '
        '"curl/8.5.0" "cc21d9b0" "shop.example" "10.0.0.2:80"',
    ),
    "traefik": LogFormat(
        "Traefik (common)",
        _text(rf"{_COMMON}\ {_TEXT}\ {_TEXT}\ \d+\ {_TEXT}\ {_TEXT}\ (?P<ms>\d+)ms"),
        '192.0.2.10 - - [10/Oct/2026:13:55:36 +0000] "GET /items/9 HTTP/1.1" 200 5 "-" "-" 1 '
        '"web@docker" "http://10.0.0.2:80" 2ms',
    ),
    "ingress-nginx": LogFormat(
        "Kubernetes ingress-nginx",
        _text(rf"{_COMMON}\ {_TEXT}\ {_TEXT}\ \d+\ (?P<s>\d+\.\d+)\ \["),
        '192.0.2.10 - - [10/Oct/2026:13:55:36 +0000] "GET /items/9 HTTP/1.1" 200 5 "-" "curl" '
        "563 0.102 [shop-web-80] [] 10.0.0.34:8080 5 0.102 200 6fa3",
    ),
    "rack": LogFormat(
        "Puma, Rack, Sinatra",
        _text(rf"{_COMMON}\ (?P<s>\d+\.\d{{4}})\s*$"),
        '192.0.2.10 - - [10/Oct/2026:13:55:36 +0000] "GET /items/9 HTTP/1.1" 200 5 0.0120',
    ),
    "squid": LogFormat(
        "Squid",
        _text(
            r"^\s*(?P<time>\d{9,10}\.\d{3})\s+(?P<ms>\d+)\ \S+\ [A-Z_]+/(?P<status>\d+)"
            r"\ (?P<size>\d+)\ (?P<method>\S+)\ (?P<path>\S+)\ "
        ),
        "1791640536.450    192 192.0.2.10 TCP_MISS/200 507 GET http://shop.example/items/9 - "
        "HIER_DIRECT/10.0.0.2 text/html",
    ),
    "gin": LogFormat(
        "Gin",
        _text(
            r"\[GIN\]\ (?P<date>\d{4}/\d\d/\d\d)\ -\ (?P<clock>\d\d:\d\d:\d\d)\ \|"
            r'\s*(?P<status>\d+)\s*\|\s*(?P<amount>\S+)\s*\|\s*\S+\s*\|\s*(?P<method>\S+)\s+"(?P<path>[^"]*)"'
        ),
        '[GIN] 2026/10/10 - 13:55:36 | 200 |    1.204ms |      192.0.2.10 | GET      "/items/9"',
    ),
    "uvicorn": LogFormat(
        "uvicorn",
        _text(
            rf'^(?:\x1b\[\d+m)*INFO(?:\x1b\[0m)?:\s+\S+\ -\ "(?:\x1b\[\d+m)*'
            rf'(?P<request>[^"\\]*+(?:\\.[^"\\]*+)*+)(?:\x1b\[0m)*"\ (?:\x1b\[\d+m)*{_STATUS}\b'
        ),
        'INFO:     192.0.2.10:51234 - "GET /items/9 HTTP/1.1" 200 OK',
    ),
    "runserver": LogFormat(
        "Django's runserver, Werkzeug (flask run), http.server",
        _text(
            r"\[(?P<time>\d\d/\w{3}/\d{4}\ \d\d:\d\d:\d\d)\]\ "
            r'"(?:(?:\\x1b|\x1b)\[\d+(?:;\d+)*m)*(?P<request>[^"\\\x1b]*+(?:\\.[^"\\\x1b]*+)*+)'
            rf'(?:\x1b\[0m)?"\ {_STATUS}(?:\ (?P<size>\S+))?'
        ),
        '[10/Oct/2026 13:55:36] "GET /items/9 HTTP/1.1" 200 5',
    ),
    "rails": LogFormat(
        "Rails",
        lambda: RailsReader().parse_hit,
        'Started GET "/items/9" for 192.0.2.10 at 2026-10-10 13:55:36 +0000\n'
        "Completed 200 OK in 15ms (Views: 8.1ms | ActiveRecord: 2.3ms)",
    ),
    "lograge": LogFormat(
        "Rails with Lograge",
        _pairs(
            EntryFields(
                time=("time",),
                method=("method",),
                path=("path",),
                status=("status",),
                seconds={"duration": "ms"},
            ),
            *("method", "path", "status", "controller"),
        ),
        "I, [2026-10-10T13:55:36.123456 #7]  INFO -- : method=GET path=/items/9 format=html "
        "controller=ItemsController action=show status=200 duration=15.53 view=8.1 db=2.3",
    ),
    "heroku": LogFormat(
        "Heroku's router",
        _pairs(
            EntryFields(
                time=("time",),
                method=("method",),
                path=("path",),
                status=("status",),
                size=("bytes",),
                seconds={"service": "ms"},
            ),
            *("at", "method", "path", "status", "dyno"),
        ),
        '2026-10-10T13:55:36.123456+00:00 heroku[router]: at=info method=GET path="/items/9" '
        "host=shop.example dyno=web.1 connect=1ms service=18ms status=200 bytes=13",
    ),
    "iis": LogFormat(
        "IIS",
        _w3c("ms", "sc-win32-status", "sc-substatus", "s-sitename", "Microsoft"),
        "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query sc-status sc-win32-status "
        "time-taken\n2026-10-10 13:55:36 10.0.0.1 GET /items/9 - 200 0 15",
    ),
    "cloudfront": LogFormat(
        "Amazon CloudFront",
        _w3c("s", "x-edge-"),
        "#Fields: date time x-edge-location sc-bytes cs-method cs-uri-stem sc-status time-taken\n"
        "2026-10-10\t13:55:36\tLAX1\t392\tGET\t/items/9\t200\t0.001",
    ),
    "w3c": LogFormat(
        "other W3C extended logs",
        _w3c("s"),
        "#Fields: date time cs-method cs-uri-stem sc-status sc-bytes time-taken\n"
        "2026-10-10 13:55:36 GET /items/9 200 5 0.012",
    ),
    "traefik-json": LogFormat(
        "Traefik (json)",
        _json(
            EntryFields(
                time=("StartUTC", "StartLocal", "time"),
                method=("RequestMethod",),
                path=("RequestPath",),
                status=("DownstreamStatus", "OriginStatus"),
                size=("DownstreamContentSize",),
                seconds={"Duration": "ns"},
            ),
            "DownstreamStatus",
        ),
        '{"DownstreamContentSize":12,"DownstreamStatus":200,"Duration":2500000,"RequestMethod":"GET",'
        '"RequestPath":"/items/9","StartUTC":"2026-10-10T13:55:36.123456789Z","level":"info"}',
    ),
    "caddy": LogFormat(
        "Caddy",
        _json(
            USUAL._replace(
                time=("ts",), seconds={"duration": "s"}, request=(), path=("request.uri",)
            ),
            *("request.method", "request.uri", "duration", "ts"),
        ),
        '{"level":"info","ts":1791640536.5241024,"logger":"http.log.access",'
        '"request":{"method":"GET","host":"shop.example","uri":"/items/9?x=1"},"duration":0.000929,'
        '"size":10900,"status":200}',
    ),
    "gcp": LogFormat(
        "Google Cloud (load balancer, Cloud Run, App Engine)",
        _json(
            EntryFields(
                time=("timestamp", "receiveTimestamp", "time"),
                method=("httpRequest.requestMethod",),
                path=("httpRequest.requestUrl",),
                status=("httpRequest.status",),
                size=("httpRequest.responseSize",),
                seconds={"httpRequest.latency": "s"},
            ),
            "httpRequest.requestMethod",
        ),
        '{"httpRequest":{"requestMethod":"GET","requestUrl":"https://shop.example/items/9",'
        '"status":200,"responseSize":"57","latency":"0.048s"},"timestamp":"2026-10-10T13:55:36Z"}',
    ),
    "api-gateway": LogFormat(
        "Amazon API Gateway (JSON)",
        _json(
            EntryFields(
                time=("requestTimeEpoch", "requestTime"),
                method=("httpMethod",),
                path=("path", "resourcePath", "routeKey"),
                status=("status",),
                size=("responseLength",),
                seconds={"responseLatency": "ms", "integrationLatency": "ms"},
            ),
            *("httpMethod", "status", "requestId"),
        ),
        '{"requestId":"c6af","ip":"192.0.2.10","requestTime":"10/Oct/2026:13:55:36 +0000",'
        '"httpMethod":"GET","path":"/items/9","status":"200","responseLength":"5",'
        '"responseLatency":"48"}',
    ),
    "azure-app-service": LogFormat(
        "Azure App Service",
        _json(
            EntryFields(
                time=_AZURE_TIME,
                method=("properties.CsMethod", "CsMethod"),
                path=("properties.CsUriStem", "CsUriStem"),
                status=("properties.ScStatus", "ScStatus"),
                size=("properties.ScBytes", "ScBytes"),
                seconds={"properties.TimeTaken": "ms", "TimeTaken": "ms"},
            ),
            "properties.CsMethod",
        ),
        '{"time":"2026-10-10T13:55:36.123Z","category":"AppServiceHTTPLogs","properties":'
        '{"CsMethod":"GET","CsUriStem":"/items/9","ScStatus":200,"ScBytes":5,"TimeTaken":15}}',
    ),
    "azure-front-door": LogFormat(
        "Azure Front Door",
        _json(
            EntryFields(
                time=_AZURE_TIME,
                method=("properties.httpMethod",),
                path=("properties.requestUri",),
                status=("properties.httpStatusCode",),
                size=("properties.responseBytes",),
                seconds={"properties.timeTaken": "s"},
            ),
            "properties.httpStatusCode",
        ),
        '{"time":"2026-10-10T13:55:36.0Z","category":"FrontDoorAccessLog","properties":{"httpMethod":'
        '"GET","requestUri":"https://shop.example:443/items/9","httpStatusCode":"200",'
        '"responseBytes":"57","timeTaken":"0.048"}}',
    ),
    "azure-gateway": LogFormat(
        "Azure Application Gateway v2",
        _json(
            EntryFields(
                time=_AZURE_TIME,
                method=("properties.httpMethod",),
                path=("properties.requestUri",),
                status=("properties.httpStatus",),
                size=("properties.sentBytes",),
                seconds={"properties.timeTaken": "s"},
            ),
            *("properties.httpStatus", "properties.serverRouted"),
        ),
        '{"timeStamp":"2026-10-10T13:55:36+00:00","category":"ApplicationGatewayAccessLog",'
        '"properties":{"httpMethod":"GET","requestUri":"/items/9","httpStatus":200,"sentBytes":57,'
        '"timeTaken":0.048,"serverRouted":"10.0.0.2:80"}}',
    ),
    "azure-gateway-v1": LogFormat(
        "Azure Application Gateway v1",
        _json(
            EntryFields(
                time=_AZURE_TIME,
                method=("properties.httpMethod",),
                path=("properties.requestUri",),
                status=("properties.httpStatus",),
                size=("properties.sentBytes",),
                seconds={"properties.timeTaken": "ms"},
            ),
            "properties.httpStatus",
        ),
        '{"time":"2026-10-10T13:55:36Z","category":"ApplicationGatewayAccessLog","properties":'
        '{"httpMethod":"GET","requestUri":"/items/9","httpStatus":200,"sentBytes":57,"timeTaken":48}}',
    ),
    "cloudflare": LogFormat(
        "Cloudflare Logpush",
        _json(
            EntryFields(
                time=("EdgeStartTimestamp",),
                method=("ClientRequestMethod",),
                path=("ClientRequestURI", "ClientRequestPath"),
                status=("EdgeResponseStatus",),
                size=("EdgeResponseBytes",),
                seconds={"EdgeTimeToFirstByteMs": "ms"},
            ),
            *("EdgeResponseStatus", "EdgeStartTimestamp"),
        ),
        '{"ClientRequestMethod":"GET","ClientRequestURI":"/items/9","EdgeResponseStatus":200,'
        '"EdgeResponseBytes":57,"EdgeStartTimestamp":"2026-10-10T13:55:36Z",'
        '"EdgeTimeToFirstByteMs":48}',
    ),
    "cloudfront-json": LogFormat(
        "Amazon CloudFront (JSON)",
        _json(
            EntryFields(
                time=("timestamp(ms)", "timestamp"),
                method=("cs-method",),
                path=("cs-uri-stem",),
                status=("sc-status",),
                size=("sc-bytes",),
                seconds={"time-taken": "s"},
            ),
            *("cs-method", "sc-status"),
        ),
        '{"timestamp(ms)":"1791640536123","cs-method":"GET","cs-uri-stem":"/items/9",'
        '"sc-status":"200","sc-bytes":"392","time-taken":"0.001"}',
    ),
    "envoy-json": LogFormat(
        "Envoy, Istio (JSON)",
        _json(
            USUAL._replace(
                time=("start_time", "@timestamp", "timestamp", "time"),
                path=("x_envoy_original_path", "path"),
                status=("response_code",),
                seconds={"duration": "ms"},
            ),
            *("response_code", "start_time|response_flags", "method|:method"),
        ),
        '{"start_time":"2026-10-10T13:55:36.310Z","method":"GET","path":"/items/9",'
        '"response_code":200,"bytes_sent":154,"duration":226}',
    ),
    "pino": LogFormat(
        "pino-http (Express, Fastify)",
        _json(
            EntryFields(
                time=("time",),
                method=("req.method",),
                path=("req.url",),
                status=("res.statusCode",),
                seconds={"responseTime": "ms"},
            ),
            *("req.method", "res.statusCode"),
        ),
        '{"level":30,"time":1791640536123,"req":{"method":"GET","url":"/items/9"},'
        '"res":{"statusCode":200},"responseTime":12,"msg":"request completed"}',
    ),
    "lograge-json": LogFormat(
        "Rails with Lograge (JSON)",
        _json(
            USUAL._replace(seconds={"duration": "ms"}),
            *("controller", "action", "status", "duration"),
        ),
        '{"method":"GET","path":"/items/9","format":"html","controller":"ItemsController",'
        '"action":"show","status":200,"duration":15.53,"@timestamp":"2026-10-10T13:55:36.123Z"}',
    ),
    "ecs": LogFormat(
        "Elastic Common Schema",
        _json(
            EntryFields(
                time=("@timestamp",),
                method=("http.request.method",),
                path=("url.path", "url.original", "url.full"),
                status=("http.response.status_code",),
                size=("http.response.body.bytes", "http.response.bytes"),
                seconds={"event.duration": "ns"},
            ),
            "http.response.status_code",
        ),
        '{"@timestamp":"2026-10-10T13:55:36.123Z","http":{"request":{"method":"GET"},"response":'
        '{"status_code":200,"body":{"bytes":5}}},"url":{"path":"/items/9"},'
        '"event":{"duration":12000000}}',
    ),
    "json": LogFormat(
        "nginx (JSON), and others with the usual names",
        _json(USUAL),
        '{"time_iso8601":"2026-10-10T13:55:36+00:00","request_method":"GET","request_uri":'
        '"/items/9","status":200,"body_bytes_sent":5,"request_time":0.012}',
    ),
    "combined": LogFormat(
        "Apache, nginx, lighttpd, gunicorn, hypercorn, Varnish",
        lambda: access_log.parse_hit,
        '192.0.2.10 - - [10/Oct/2026:13:55:36 +0000] "GET /items/9 HTTP/1.1" 200 5 "-" "curl"',
        _COMBINED,
    ),
    "common": LogFormat(
        "Apache, Tomcat, Jetty, and others with these parts",
        lambda: access_log.parse_hit,
        '192.0.2.10 - - [10/Oct/2026:13:55:36 +0000] "GET /items/9 HTTP/1.1" 200 5',
    ),
}
