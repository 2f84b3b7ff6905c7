package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// callTimeout limits all calls except those that watch events; the server's own limits are shorter.
const callTimeout = 90 * time.Second

// defaultService is the Service of the Helm chart, in the format of the API server's proxy.
const defaultService = "heliostat/https:heliostat:8090"

// ServerFlags select the Heliostat server, the caller's credentials, and the namespace of RayClusters.
type ServerFlags struct {
	server, tokenFile, authority, certificate, key string
	service, audience, Namespace                   string
	kube                                           KubeFlags
	// all holds these flags.
	all *pflag.FlagSet
}

// ServerHelp describes in the help of commands how they find the server.
const ServerHelp = `Without --server or ` + ServerVariable + `, the command finds the server as kubectl does:
by the kubeconfig, through the API server's proxy to the Service of the Helm chart. It does not send the kubeconfig's
credentials to Heliostat. If the user of the kubeconfig is a ServiceAccount that may create tokens for itself, the
command sends a short-lived token that is only valid for Heliostat. Otherwise, set --token-file or
` + TokenFileVariable + `.`

// AddTo adds the flags to a command.
func (f *ServerFlags) AddTo(cmd *cobra.Command) {
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	f.all = flags
	flags.StringVar(&f.server, "server", "", "address of a Heliostat server, for example http://127.0.0.1:8090 "+
		"(default: $"+ServerVariable+", or by the kubeconfig)")
	flags.StringVar(&f.tokenFile, "token-file", "", "a file with the caller's bearer token (default: $"+
		TokenFileVariable+")")
	flags.StringVar(&f.authority, "certificate-authority", "",
		"with --server: a PEM file of authorities for the server's certificate")
	flags.StringVar(&f.certificate, "client-certificate", "",
		"with --server: a PEM file with the caller's client certificate")
	flags.StringVar(&f.key, "client-key", "", "with --server: a PEM file with its private key")
	f.kube.AddTo(flags)
	flags.StringVar(&f.service, "service", defaultService,
		"the Service to which the API server forwards calls: NAMESPACE/[https:]NAME[:PORT]")
	flags.StringVar(&f.audience, "token-audience", access.Audience,
		"audience of the token that the command creates for the kubeconfig's ServiceAccount; one of the server's "+
			"--token-audiences")
	ClusterNamespace(flags, &f.Namespace,
		"the RayCluster's namespace (default: that of the kubeconfig's context, or default)")
	flags.VisitAll(func(f *pflag.Flag) { setGroup(f, findFlags) })
	cmd.Flags().AddFlagSet(flags)
}

// RefuseBesideFile fails if any of these flags is combined with a file, because planning a file needs no server. The
// environment may name a server nevertheless.
func (f *ServerFlags) RefuseBesideFile() error {
	var given []string
	f.all.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			given = append(given, "--"+flag.Name)
		}
	})
	if len(given) == 0 {
		return nil
	}
	return BadInput(fmt.Errorf("%s: --snapshot needs no server: want a RayCluster instead, or --snapshot without "+
		"these flags", strings.Join(given, ", ")))
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
	if f.authority != "" || f.certificate != "" || f.key != "" {
		return nil, BadInput(errors.New("--certificate-authority, --client-certificate and --client-key are for " +
			"--server; the kubeconfig has its own"))
	}
	config, err := f.kube.client().ClientConfig()
	if err != nil {
		return nil, BadInput(fmt.Errorf("finding the server: %w; give --server or --kubeconfig",
			explainUnusable(f.kube.Kubeconfig, f.kube.context, err)))
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
	if f.kube.context != "" || f.service != defaultService {
		return nil, errors.New("--context and --service are for the server in the kubeconfig, not for --server")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if f.authority != "" {
		pem, err := os.ReadFile(f.authority)
		if err != nil {
			return nil, fmt.Errorf("reading --certificate-authority: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading --certificate-authority: no certificate in %s", f.authority)
		}
	}
	if (f.certificate == "") != (f.key == "") {
		return nil, errors.New("--client-certificate and --client-key: want both, or neither")
	}
	if f.certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
		if err != nil {
			return nil, fmt.Errorf("reading --client-certificate and --client-key: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	token := f.callersToken()
	if token.path == "" {
		return transport, nil
	}
	if _, err := token.read(); err != nil {
		return nil, err
	}
	if target, err := url.Parse(address); err == nil && target.Scheme == "http" && !isLoopbackHost(target.Hostname()) {
		return nil, fmt.Errorf("%s: %s has no TLS, so the network could read the token; use https, or a loopback "+
			"address", token.named, address)
	}
	return withToken{token.now, "Authorization", transport}, nil
}

// callersToken returns the file of --token-file or of its variable. A client certificate is another identity of the
// caller, so it counts before the variable.
func (f *ServerFlags) callersToken() tokenFile {
	if f.tokenFile == "" && f.certificate == "" {
		return tokenFile{os.Getenv(TokenFileVariable), "$" + TokenFileVariable}
	}
	return tokenFile{f.tokenFile, "--token-file"}
}

// proxied connects through the API server that config names.
func (f *ServerFlags) proxied(config *rest.Config) (*apiv1.Client, error) {
	namespace, service, found := strings.Cut(f.service, "/")
	if !found || !IsNamespace(namespace) || strings.Trim(service, ".") == "" || strings.Contains(service, "/") {
		return nil, BadInput(
			fmt.Errorf("--service %q: want NAMESPACE/[https:]NAME[:PORT], for example %s", f.service, defaultService),
		)
	}
	token := f.callersToken()
	if token.path != "" {
		if _, err := token.read(); err != nil {
			return nil, BadInput(err)
		}
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, BadInput(fmt.Errorf("reading the API server's address: %w", err))
	}
	tokens, err := newTokenRequester(config, f.audience)
	if err != nil {
		return nil, BadInput(err)
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if token.path != "" {
			return withToken{token.now, access.ForwardedHeader, next}
		}
		return withToken{tokens.now, access.ForwardedHeader, next}
	})
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, BadInput(fmt.Errorf("preparing to call the API server: %w", err))
	}
	return clientOf(base.JoinPath("api", "v1", "namespaces", namespace, "services", service, "proxy").String(),
		transport)
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

// Named reports whether a flag or the environment selects a server.
func (f *ServerFlags) Named() bool {
	return cmp.Or(f.server, os.Getenv(ServerVariable), f.kube.Kubeconfig, f.kube.context) != "" ||
		f.service != defaultService
}
