package gcs

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// unreachedBy lists the connection errors: the text that the status of a call quotes, what it means for an address, and
// what users can do; nothing if the network may be at fault. The first match applies.
var unreachedBy = []struct{ quote, happened, advice string }{
	{syscall.ECONNREFUSED.Error(), "nothing listens at %s",
		"look at the head pod's log, whether its GCS has ended or has another port"},
	{"no such host", "the name of %s is not known", "look at the cluster's DNS, and at the head's Service"},
	{"no route to host", "there is no way to %s", ""},
	{"network is unreachable", "there is no way to %s", ""},
	{"i/o timeout", "%s takes no connection", ""},
	{"EOF", "%s ended the connection", whyEnded},
	{"connection reset", "%s ended the connection", whyEnded},
	{"broken pipe", "%s ended the connection", whyEnded},
}

// whyEnded names what ends a connection: Ray sends no reason.
const whyEnded = "look at the head pod's log, whether its GCS has ended; a head with RAY_USE_TLS=1 also does so when " +
	"the client does not speak TLS, or its certificate is missing, expired or not signed by the head's CA"

// unreached returns the error of a call without an answer from the head. The status from gRPC quotes the connection
// error, nested in the errors of other layers. Only the innermost error is useful to operators of Ray.
func (c *Client) unreached(s *status.Status, timeout time.Duration) error {
	failure := &raydemand.Failure{Detail: s.String()}
	network := cmp.Or(c.config.ClosedBy,
		"look whether the head pod lives, and whether a NetworkPolicy closes its GCS port to Heliostat")
	if s.Code() == codes.DeadlineExceeded {
		failure.Happened = fmt.Sprintf("%s did not answer within %s", c.config.Address, timeout)
		failure.Advice = network
		return failure
	}
	_, cause, failed := strings.Cut(s.Message(), "authentication handshake failed: ")
	if !failed { // with TLS 1.3, a head refuses a certificate after the handshake
		_, cause, failed = strings.Cut(s.Message(), "remote error: ")
	}
	if failed && !strings.Contains(cause, "EOF") {
		failure.Happened = fmt.Sprintf("TLS with %s failed: %s", c.config.Address, shortened(cause))
		failure.Advice = "look at the certificates of both, and whether the head speaks TLS (RAY_USE_TLS=1)"
		return failure
	}
	for _, way := range unreachedBy {
		if strings.Contains(s.Message(), way.quote) {
			failure.Happened, failure.Advice = fmt.Sprintf(way.happened, c.config.Address), cmp.Or(way.advice, network)
			return failure
		}
	}
	failure.Happened = fmt.Sprintf("%s cannot be called: %s", c.config.Address, quoted(s.Message()))
	return failure
}
