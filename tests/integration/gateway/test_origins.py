#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which pages may use a gateway without keys: what a browser says of them in Host, Origin and Sec-Fetch-Site."""

import json
import pathlib
import shutil
import socket
import subprocess
import tempfile

from pool import BUILD, WAIT, Base, Gateway, main, make_certificate

EVIL = "https://evil.example"
PATHS = ("/", "/page/main.js", "/health", "/health/live", "/metrics", "/status", "/v1/models", "/api/version", "/nothing")


class Asked(Base):
    def ask(self, method="GET", path="/health/live", gateway=None, body=None, **headers):
        """The status, and the header that is named where it is 403."""
        gateway = gateway or self.gateway
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = gateway.connect()
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": f"{gateway.host}:{gateway.port}", **named}.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status != 403:
            return answer.status
        error = json.loads(text)["error"]
        if isinstance(error, str):  # Ollama's form
            return error.partition(":")[0]
        self.assertEqual(error["code"], "origin_not_allowed")
        self.assertIn(error["param"] + ":", error["message"])
        return error["param"]

    def own(self):
        return f"http://{self.gateway.host}:{self.gateway.port}"


class Loopback(Asked):
    def test_a_foreign_origin_is_refused_everywhere(self):
        for path in PATHS:
            self.assertEqual(self.ask(path=path, Origin=EVIL), "Origin", path)
        for method in ("POST", "OPTIONS", "HEAD", "DELETE"):
            connection = self.gateway.connect()
            connection.request(method, "/v1/completions", b'{"prompt": "a"}', {"Origin": EVIL, "Content-Type": "text/plain"})
            self.assertEqual(connection.getresponse().status, 403)
            connection.close()
        for origin in ("null", "http://localhost:3000", "https://127.0.0.1", "file://", "", "chrome-extension://abc",
                       self.own() + "0", self.own() + ".evil.example", self.own() + "/", "evil.example"):
            self.assertEqual(self.ask(Origin=origin), "Origin", origin)

    def test_nothing_is_computed_for_it(self):
        before = self.gateway.metrics()["quern_generated_tokens_total"]
        body = b'{"prompt": "a", "max_tokens": 20}'
        self.assertEqual(self.ask("POST", "/v1/completions", body=body, Origin=EVIL, Content_Type="text/plain"), "Origin")
        self.nothing_runs()
        self.assertEqual(self.gateway.metrics()["quern_generated_tokens_total"], before)

    def test_a_foreign_host_is_refused_everywhere(self):
        for path in PATHS:
            self.assertEqual(self.ask(path=path, Host="evil.example"), "Host", path)
        for host in ("evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "notlocalhost", "0.0.0.0",
                     "192.168.1.1", "[::2]", "[::ffff:8.8.8.8]", "a.local", socket.gethostname() + ".evil.example"):
            self.assertEqual(self.ask(Host=host), "Host", host)
        # As after DNS was rebound: the page and the address it asks have one name.
        self.assertEqual(self.ask(Host="evil.example", Origin="http://evil.example"), "Host")

    def test_names_of_loopback_are_served(self):
        for host in ("localhost", "LOCALHOST:1", "localhost.", "quern.localhost:8080", "127.0.0.1", "127.1.2.3:80",
                     "[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]"):
            self.assertEqual(self.ask(Host=host), 200, host)
            authority = host if ":" in host.rpartition("]")[2] else host + ":80"
            self.assertEqual(self.ask(Host=host, Origin="http://" + authority.lower().replace("localhost.:", "localhost:")),
                             200, host)

    def test_its_own_page_is_served(self):
        self.assertEqual(self.ask(Origin=self.own()), 200)
        self.assertEqual(self.ask(Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors", Sec_Fetch_Dest="empty"), 200)
        body = b'{"prompt": "a", "max_tokens": 2}'
        self.assertEqual(self.ask("POST", "/v1/completions", body=body, Origin=self.own(), Sec_Fetch_Site="same-origin"), 200)
        # A proxy on the same machine that encrypts, and passes Host on.
        self.assertEqual(self.ask(Host="chat.localhost", Origin="https://chat.localhost"), 200)
        self.assertEqual(self.ask(Host="chat.localhost:443", Origin="https://chat.localhost"), 200)
        self.assertEqual(self.ask(Host="chat.localhost:8443", Origin="https://chat.localhost"), "Origin")

    def test_requests_without_an_origin_say_by_their_site(self):
        for site in ("cross-site", "same-site"):
            self.assertEqual(self.ask(Sec_Fetch_Site=site), "Sec-Fetch-Site")
            self.assertEqual(self.ask(Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="script"),
                             "Sec-Fetch-Site")
            self.assertEqual(self.ask(Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe"),
                             "Sec-Fetch-Site")
            self.assertEqual(self.ask("POST", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document"),
                             "Sec-Fetch-Site")
            # A link that is followed.
            self.assertEqual(self.ask(path="/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document"),
                             200)
        self.assertEqual(self.ask(path="/", Sec_Fetch_Site="none", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document"), 200)

    def test_each_family_is_told_in_its_form(self):
        for path, said in (("/v1/messages", lambda body: body["error"]["type"] == "permission_error" and body["type"] == "error"),
                           ("/api/chat", lambda body: body["error"].startswith("Origin: pages of")),
                           ("/v1/completions", lambda body: body["error"]["param"] == "Origin")):
            status, _, body = self.gateway.ask("POST", path, {}, {"Origin": EVIL})
            self.assertEqual(status, 403)
            self.assertTrue(said(body), body)

    def test_what_is_refused_leaves_the_connection(self):
        connection = self.gateway.connect()
        for origin, status in ((EVIL, 403), (self.own(), 200), ("null", 403)):
            connection.request("POST", "/v1/completions", b'{"prompt": "a", "max_tokens": 2}', {"Origin": origin})
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, status)
        connection.close()


class Cors(Asked):
    options = ("--cors", "https://chat.example", "--hosts", "quern.example,gpu.example:8443")

    def test_pages_may_read_what_answers_say_of_themselves(self):
        exposed = self.gateway.ask("GET", "/v1/models", headers={"Origin": "https://chat.example"})[1]["Access-Control-Expose-Headers"]
        names = set(exposed.split(", "))
        self.assertLessEqual({"x-request-id", "request-id", "retry-after"}, names)
        self.assertLessEqual({f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")}
                             | {f"anthropic-ratelimit-{of}-{what}" for what in ("limit", "remaining", "reset")
                                for of in ("requests", "tokens")}, names)

    def test_the_origin_that_is_named_is_served_and_no_other(self):
        self.assertEqual(self.ask(Origin="https://chat.example", Sec_Fetch_Site="cross-site"), 200)
        self.assertEqual(self.ask("OPTIONS", "/v1/completions", Origin="https://chat.example"), 204)
        for origin in (EVIL, "http://chat.example", "https://chat.example:8443", "null"):
            self.assertEqual(self.ask(Origin=origin), "Origin", origin)
            self.assertEqual(self.ask("OPTIONS", "/v1/completions", Origin=origin), "Origin", origin)
        self.assertEqual(self.ask(Origin=self.own()), 200)

    def test_hosts_that_are_listed_are_served(self):
        for host in ("quern.example", "QUERN.example:80", "gpu.example", "gpu.example:1"):
            self.assertEqual(self.ask(Host=host), 200, host)
        for host in ("x.quern.example", "example", "quern.example.evil.example", "chat.example"):
            self.assertEqual(self.ask(Host=host), "Host", host)
        # A proxy that encrypts and sets Host to the gateway's address.
        for origin in ("https://quern.example", "http://quern.example", "https://gpu.example:8443"):
            self.assertEqual(self.ask(Origin=origin), 200, origin)
        for origin in ("https://quern.example:3000", "https://gpu.example"):
            self.assertEqual(self.ask(Origin=origin), "Origin", origin)

    def test_everybody_may_where_that_is_said(self):
        every = Gateway(self.folder, self.rundir, "--cors", "*")
        every.ready()
        for origin in (EVIL, "null"):
            self.assertEqual(self.ask(gateway=every, Origin=origin, Sec_Fetch_Site="cross-site"), 200)
        self.assertEqual(self.ask(gateway=every, Host="evil.example"), "Host")
        self.assertEqual(every.end(), 0)
        every = Gateway(self.folder, self.rundir, "--hosts", "*")
        every.ready()
        self.assertEqual(self.ask(gateway=every, Host="evil.example"), 200)
        self.assertEqual(self.ask(gateway=every, Origin=EVIL), "Origin")
        self.assertEqual(every.end(), 0)

    def test_a_list_that_is_none_is_refused(self):
        for hosts in ("", "a,", ",a", "a b", "https://a", "a/", "*,a", "a:x"):
            said = subprocess.run([str(BUILD / "quern-gateway"), "--hosts", hosts], capture_output=True, text=True, timeout=WAIT)
            self.assertEqual(said.returncode, 2)
            self.assertIn(f'--hosts: "{hosts}"', said.stderr)


class Open(Asked):
    """On every address of the machine."""
    options = ("--listen", "0.0.0.0:0", "--open")

    def test_addresses_and_names_that_nobody_can_register_are_served(self):
        for host in ("192.168.1.1:8080", "8.8.8.8", "[fe80::1]", "localhost", "quern", "quern:8080", "box.local",
                     "box.internal", "box.home.arpa.", socket.gethostname()):
            self.assertEqual(self.ask(Host=host), 200, host)
            self.assertEqual(self.ask(Host=host, Origin=f"https://{EVIL}"), "Origin", host)
        for host in ("evil.example", "a.b.com", "local.evil.example", "192.168.1.1.evil.example", "box.notlocal"):
            self.assertEqual(self.ask(Host=host), "Host", host)
        self.assertEqual(self.ask(Host="192.168.1.1:8080", Origin="http://192.168.1.1:8080"), 200)


class Keys(Asked):
    KEY = "sk-0123456789abcdef"

    @classmethod
    def setUpClass(cls):
        place = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.addClassCleanup(shutil.rmtree, place)
        (place / "keys").write_text(f"ada {cls.KEY}\n")
        (place / "keys").chmod(0o600)
        cls.options = ("--keys", str(place / "keys"))
        super().setUpClass()

    def test_a_key_is_enough_and_needed(self):
        for headers in ({"Host": "quern.example"}, {"Origin": "app://an-app"}, {"Sec_Fetch_Site": "cross-site"}):
            self.assertEqual(self.ask(path="/v1/models", Authorization=f"Bearer {self.KEY}", **headers), 200)
            self.assertEqual(self.ask(path="/v1/models", **headers), 401)


class Tls(Asked):
    @classmethod
    def setUpClass(cls):
        place = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.addClassCleanup(shutil.rmtree, place)
        make_certificate(str(place / "cert.pem"), str(place / "key.pem"))
        cls.options = ("--tls-cert", str(place / "cert.pem"), "--tls-key", str(place / "key.pem"))
        super().setUpClass()

    def test_the_rules_hold(self):
        self.assertEqual(self.ask(Origin=f"https://{self.gateway.host}:{self.gateway.port}"), 200)
        self.assertEqual(self.ask(Origin=EVIL), "Origin")
        self.assertEqual(self.ask(Host="evil.example"), "Host")


if __name__ == "__main__":
    main()
