package engine

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/access"
)

func TestFlagsThatWouldLetAnybodyInOrDoNotGoTogetherAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		options portFlags
		want    string
	}{
		"as it comes":                       {portFlags{REST: "127.0.0.1:8090"}, ""},
		"beyond loopback":                   {portFlags{REST: ":8090"}, ""},
		"nobody asked on loopback":          {portFlags{REST: "localhost:8090", noAuth: true}, ""},
		"nobody asked and nothing served":   {portFlags{noAuth: true}, ""},
		"nobody asked beyond loopback":      {portFlags{REST: ":8090", noAuth: true}, "let anybody who reaches :8090"},
		"nobody asked on a name":            {portFlags{REST: "host:8090", noAuth: true}, "let anybody"},
		"nobody asked but for certificates": {portFlags{REST: "[::1]:1", noAuth: true, certs: access.CertificateFiles{Cert: "a", Key: "b", ClientCA: "c"}}, "it cannot be combined with"},
		"nobody asked but for an audience":  {portFlags{REST: "[::1]:1", noAuth: true, audiences: []string{"heliostat"}}, "it cannot be combined with"},
		"a certificate without a key":       {portFlags{certs: access.CertificateFiles{Cert: "a"}}, `--tls-cert-file "a", --tls-key-file "", --client-ca-file "": a certificate and its key go together`},
		"profiles on loopback":              {portFlags{pprof: "localhost:6060"}, ""},
		"profiles beyond loopback":          {portFlags{pprof: ":6060"}, `--pprof-bind-address ":6060": profiles reveal memory`},
		"clients' certificates without TLS": {portFlags{certs: access.CertificateFiles{ClientCA: "c"}}, "need TLS"},
	} {
		err := test.options.Validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestTokensInClearTextAreToldBeyondLoopbackAlone(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:8090": false, "localhost:8090": false, "": false, ":8090": true, "10.0.0.1:8090": true} {
		for _, files := range []access.CertificateFiles{{}, {Cert: "a", Key: "b"}} {
			var log bytes.Buffer
			f := portFlags{REST: listen, certs: files}
			f.warn(slog.New(slog.NewTextHandler(&log, nil)))
			if told := strings.Contains(log.String(), "clear text"); told != (want && !files.Given()) {
				t.Errorf("%q with certificate %q: told %v", listen, files.Cert, told)
			}
		}
	}
}

func TestOtherCopiesCallTheAddressThatIsAdvertisedWhereItIsListenedTo(t *testing.T) {
	for _, test := range []struct {
		options portFlags
		want    string
	}{
		{portFlags{REST: ":8090", Advertised: "10.1.2.3"}, "10.1.2.3:8090"},
		{portFlags{REST: "0.0.0.0:8443", Advertised: "10.1.2.3"}, "10.1.2.3:8443"},
		{portFlags{REST: "[::]:8090", Advertised: "fd00::1"}, "[fd00::1]:8090"},
		{portFlags{REST: "10.1.2.3:8090", Advertised: "10.1.2.3"}, "10.1.2.3:8090"},
		{portFlags{REST: "127.0.0.1:8090", Advertised: "10.1.2.3"}, ""},
		{portFlags{REST: "localhost:8090", noAuth: true, Advertised: "10.1.2.3"}, ""},
		{portFlags{REST: ":8090"}, ""},
		{portFlags{Advertised: "10.1.2.3"}, ""},
	} {
		if got := test.options.PeerAddress(); got != test.want {
			t.Errorf("%+v is called at %q, want %q", test.options, got, test.want)
		}
	}
	if err := (&portFlags{Advertised: "leader.example"}).Validate(); err == nil || !strings.Contains(err.Error(), "want an IP address") {
		t.Errorf("a name is Advertised: %v", err)
	}
}
