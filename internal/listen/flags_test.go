package listen

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/access/certs"
)

func TestFlagsThatWouldLetAnybodyInOrDoNotGoTogetherAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		options Flags
		want    string
	}{
		"as it comes":                       {Flags{REST: "127.0.0.1:8090"}, ""},
		"beyond loopback":                   {Flags{REST: ":8090"}, ""},
		"nobody asked on loopback":          {Flags{REST: "localhost:8090", noAuth: true}, ""},
		"nobody asked and nothing served":   {Flags{noAuth: true}, ""},
		"nobody asked beyond loopback":      {Flags{REST: ":8090", noAuth: true}, "let anybody who reaches :8090"},
		"nobody asked on a name":            {Flags{REST: "host:8090", noAuth: true}, "let anybody"},
		"nobody asked but for certificates": {Flags{REST: "[::1]:1", noAuth: true, certs: certs.Files{Cert: "a", Key: "b", ClientCA: "c"}}, "it cannot be combined with"},
		"nobody asked but for an audience":  {Flags{REST: "[::1]:1", noAuth: true, audiences: []string{"heliostat"}}, "it cannot be combined with"},
		"a certificate without a key":       {Flags{certs: certs.Files{Cert: "a"}}, `--tls-cert-file "a", --tls-key-file "", --client-ca-file "": a certificate and its key go together`},
		"profiles on loopback":              {Flags{pprof: "localhost:6060"}, ""},
		"profiles beyond loopback":          {Flags{pprof: ":6060"}, `--pprof-bind-address ":6060": profiles reveal memory`},
		"clients' certificates without TLS": {Flags{certs: certs.Files{ClientCA: "c"}}, "need TLS"},
	} {
		err := test.options.Validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestTokensInClearTextAreToldBeyondLoopbackAlone(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:8090": false, "localhost:8090": false, "": false, ":8090": true, "10.0.0.1:8090": true} {
		for _, files := range []certs.Files{{}, {Cert: "a", Key: "b"}} {
			var log bytes.Buffer
			f := Flags{REST: listen, certs: files}
			f.warn(slog.New(slog.NewTextHandler(&log, nil)))
			if told := strings.Contains(log.String(), "clear text"); told != (want && !files.Given()) {
				t.Errorf("%q with certificate %q: told %v", listen, files.Cert, told)
			}
		}
	}
}

func TestOtherCopiesCallTheAddressThatIsAdvertisedWhereItIsListenedTo(t *testing.T) {
	for _, test := range []struct {
		options Flags
		want    string
	}{
		{Flags{REST: ":8090", Advertised: "10.1.2.3"}, "10.1.2.3:8090"},
		{Flags{REST: "0.0.0.0:8443", Advertised: "10.1.2.3"}, "10.1.2.3:8443"},
		{Flags{REST: "[::]:8090", Advertised: "fd00::1"}, "[fd00::1]:8090"},
		{Flags{REST: "10.1.2.3:8090", Advertised: "10.1.2.3"}, "10.1.2.3:8090"},
		{Flags{REST: "127.0.0.1:8090", Advertised: "10.1.2.3"}, ""},
		{Flags{REST: "localhost:8090", noAuth: true, Advertised: "10.1.2.3"}, ""},
		{Flags{REST: ":8090"}, ""},
		{Flags{Advertised: "10.1.2.3"}, ""},
	} {
		if got := test.options.PeerAddress(); got != test.want {
			t.Errorf("%+v is called at %q, want %q", test.options, got, test.want)
		}
	}
	if err := (&Flags{Advertised: "leader.example"}).Validate(); err == nil || !strings.Contains(err.Error(), "want an IP address") {
		t.Errorf("a name is Advertised: %v", err)
	}
}
