package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// callTimeout limits each call; the server's own limits are shorter.
const callTimeout = 90 * time.Second

// defaultService is the Service of the Helm chart, in the format of the API server's proxy.
const defaultService = "heliostat/https:heliostat:8090"

// ServerFlags select the Heliostat server, the caller's credentials, and the namespace of RayClusters.
type ServerFlags struct {
	server, tokenFile, authority string
	service, Namespace           string
	kube                         KubeFlags
}

// ServerHelp describes in the help of commands how they find the server.
const ServerHelp = `Without --server or ` + ServerVariable + `, the command finds the server as kubectl does:
by the kubeconfig, through the API server's proxy to the Service of the Helm chart. It does not send the kubeconfig's
credentials to Heliostat: set --token-file or ` + TokenFileVariable + ` to a file with the output of
` + "`kubectl create token NAME --audience heliostat`" + `.`

// AddTo adds the flags to a command.
func (f *ServerFlags) AddTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.server, "server", "", "address of a Heliostat server, for example http://127.0.0.1:8090 "+
		"(default: $"+ServerVariable+", or by the kubeconfig)")
	flags.StringVar(&f.tokenFile, "token-file", "", "a file with the caller's bearer token (default: $"+
		TokenFileVariable+")")
	flags.StringVar(&f.authority, "certificate-authority", "",
		"with --server: a PEM file of authorities for the server's certificate")
	f.kube.AddTo(flags)
	flags.StringVar(&f.service, "service", defaultService,
		"the Service to which the API server forwards calls: NAMESPACE/[https:]NAME[:PORT]")
	ClusterNamespace(flags, &f.Namespace,
		"the RayCluster's namespace (default: that of the kubeconfig's context, or default)")
}

// ExcludedBy makes a flag for a file refuse the flags that select the server, which a file does not need. The
// environment may name a server nevertheless. Call it after AddTo.
func (f *ServerFlags) ExcludedBy(file string, cmd *cobra.Command) {
	for _, name := range []string{"certificate-authority", "context", "kubeconfig", "namespace", "server", "service",
		"token-file"} {
		cmd.MarkFlagsMutuallyExclusive(file, name)
	}
}

// Client returns a client of the server that the flags select.
func (f *ServerFlags) Client() (*apiv1.Client, error) {
	address := cmp.Or(f.server, os.Getenv(ServerVariable))
	if address != "" {
		transport, err := f.direct(address)
		if err != nil {
			return nil, BadInput(err)
		}
		api, err := clientOf(address, transport)
		if err != nil && f.server == "" {
			err = BadInput(fmt.Errorf("$%s: %w", ServerVariable, err))
		} else if err != nil {
			err = BadInput(fmt.Errorf("--server: %w", err))
		}
		return api, err
	}
	if f.authority != "" {
		return nil, BadInput(errors.New("--certificate-authority is for --server; the kubeconfig has its own"))
	}
	config, err := f.kube.client().ClientConfig()
	if err != nil {
		return nil, BadInput(fmt.Errorf("finding the server: %w, or --server", f.kube.unusable(err)))
	}
	return f.proxied(config)
}

func clientOf(address string, transport http.RoundTripper) (*apiv1.Client, error) {
	api, err := apiv1.NewClient(address, &http.Client{Transport: transport, Timeout: callTimeout})
	if err != nil {
		return nil, BadInput(err)
	}
	return api, nil
}

// direct connects to the server itself.
func (f *ServerFlags) direct(address string) (http.RoundTripper, error) {
	token := f.callersToken()
	target, err := url.Parse(address)
	switch {
	case f.kube.context != "" || f.service != defaultService:
		return nil, errors.New("--context and --service are for the server in the kubeconfig, not for --server")
	case token != "" && err == nil && target.Scheme == "http" &&
		target.Hostname() != "localhost" && !net.ParseIP(target.Hostname()).IsLoopback():
		return nil, fmt.Errorf("%s has no TLS, so the network could read the token; use https, or a loopback address",
			address)
	}
	transport, err := rest.TransportFor(&rest.Config{BearerTokenFile: token, TLSClientConfig: rest.TLSClientConfig{
		CAFile: f.authority}})
	if err != nil {
		return nil, fmt.Errorf("reading --token-file, $%s or --certificate-authority: %w", TokenFileVariable, err)
	}
	return transport, nil
}

// callersToken returns the file of --token-file or of its variable.
func (f *ServerFlags) callersToken() string { return cmp.Or(f.tokenFile, os.Getenv(TokenFileVariable)) }

// errNoToken says why a kubeconfig is not enough: anything with the Service's name can answer behind the API server's
// proxy, because the proxy checks no certificate.
var errNoToken = errors.New("--token-file is missing: the command never sends the kubeconfig's own credentials to " +
	"Heliostat; want a file with the output of `kubectl create token NAME --audience " + access.Audience + "`, or " +
	"--server")

// proxied connects through the API server that config names. It sends the caller's token in a header of its own,
// because the API server consumes Authorization itself.
func (f *ServerFlags) proxied(config *rest.Config) (*apiv1.Client, error) {
	namespace, service, found := strings.Cut(f.service, "/")
	if !found || !IsNamespace(namespace) || strings.Trim(service, ".") == "" || strings.Contains(service, "/") {
		return nil, BadInput(
			fmt.Errorf("--service %q: want NAMESPACE/[https:]NAME[:PORT], for example %s", f.service, defaultService),
		)
	}
	file := f.callersToken()
	if file == "" {
		return nil, BadInput(errNoToken)
	}
	if _, err := readToken(file); err != nil {
		return nil, BadInput(err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, BadInput(fmt.Errorf("reading the API server's address: %w", err))
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return withToken{file, next}
	})
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, BadInput(fmt.Errorf("preparing to call the API server: %w", err))
	}
	return clientOf(base.JoinPath("api", "v1", "namespaces", namespace, "services", service, "proxy").String(),
		transport)
}

func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading --token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// withToken sends the token in a file with each call. It reads the file each time, because others renew the token while
// a command waits.
type withToken struct {
	file string
	next http.RoundTripper
}

// RoundTrip sends the call with the token.
func (w withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := readToken(w.file)
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set(access.ForwardedHeader, "Bearer "+token)
	return w.next.RoundTrip(request)
}

// Target returns the RayCluster that an argument names, and a client of the server.
func (f *ServerFlags) Target(argument string) (nodepool.ClusterKey, *apiv1.Client, error) {
	key, err := f.Cluster(argument)
	if err != nil {
		return key, nil, err
	}
	api, err := f.Client()
	return key, api, err
}

// ListsAll says in the help of a command that --namespace chooses among the RayClusters of all namespaces. Call it
// after AddTo.
func (f *ServerFlags) ListsAll(cmd *cobra.Command) {
	cmd.Flags().Lookup("namespace").Usage = "only RayClusters of this namespace (default: of all that you may list)"
}

// Cluster returns the RayCluster that an argument names: NAME in the namespace of the flags, or NAMESPACE/NAME.
func (f *ServerFlags) Cluster(argument string) (nodepool.ClusterKey, error) {
	key, err := ClusterKey(argument, f.Namespace)
	if err == nil && key.Namespace == "" {
		return ClusterKey(f.contextNamespace()+"/"+argument, "")
	}
	return key, err
}

// ClusterKey returns the RayCluster that NAME or NAMESPACE/NAME names, given --namespace. Its namespace is empty if
// neither sets one.
func ClusterKey(argument, namespace string) (nodepool.ClusterKey, error) {
	first, name, qualified := strings.Cut(argument, "/")
	if !qualified {
		first, name = namespace, argument
	}
	switch {
	case name == "" || strings.Contains(name, "/") || qualified && first == "":
		return nodepool.ClusterKey{}, BadInput(fmt.Errorf("RayCluster %q: want NAME or NAMESPACE/NAME", argument))
	case strings.HasSuffix(name, ".json"):
		return nodepool.ClusterKey{}, BadInput(fmt.Errorf("RayCluster %q: want NAME or NAMESPACE/NAME; a file is for "+
			"--snapshot of plan and explain", argument))
	case qualified && namespace != "" && namespace != first:
		return nodepool.ClusterKey{}, BadInput(fmt.Errorf("RayCluster %q is not in --namespace %s: want one of "+
			"the two, or the same namespace", argument, namespace))
	case first != "" && !IsNamespace(first) || len(validation.IsDNS1123Subdomain(name)) > 0:
		return nodepool.ClusterKey{}, BadInput(fmt.Errorf("RayCluster %q: want a DNS name, NAME or NAMESPACE/NAME: "+
			"of a to z, 0 to 9, - and .", argument))
	}
	return nodepool.ClusterKey{Namespace: first, Name: name}, nil
}

// contextNamespace returns the namespace of the kubeconfig's context, or default.
func (f *ServerFlags) contextNamespace() string {
	if namespace, _, err := f.kube.client().Namespace(); err == nil && namespace != "" {
		return namespace
	}
	return "default"
}
