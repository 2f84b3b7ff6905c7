package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfig reads the kubeconfig as kubectl does: the given file, KUBECONFIG, the file in the home directory, or the
// pod's service account. An empty context means the current one.
func kubeconfig(file, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context})
}

// KubeFlags select the API server, with the flags of kubectl.
type KubeFlags struct{ Kubeconfig, context string }

// AddTo adds the flags to a command.
func (f *KubeFlags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "",
		"the kubeconfig file (default: as kubectl finds it, or the pod's service account)")
	flags.StringVar(&f.context, "context", "", "a context of the kubeconfig other than the current one")
}

// Given reports whether any of the flags is set.
func (f KubeFlags) Given() bool { return f != KubeFlags{} }

// client reads the kubeconfig that the flags select.
func (f KubeFlags) client() clientcmd.ClientConfig { return kubeconfig(f.Kubeconfig, f.context) }

// Config finds the API server as kubectl does. Its error is bad input.
func (f KubeFlags) Config() (*rest.Config, error) {
	config, err := f.client().ClientConfig()
	if err != nil {
		return nil, BadInput(
			fmt.Errorf("finding the API server: %w; give --kubeconfig", explainUnusable(f.Kubeconfig, f.context, err)),
		)
	}
	return config, nil
}

// explainUnusable says which kubeconfig cannot be used, why, and what would be right.
func explainUnusable(file, context string, err error) error {
	from := "--kubeconfig " + file
	if file == "" {
		from = "the kubeconfig"
	}
	switch {
	case clientcmd.IsEmptyConfig(err) && file == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		return fmt.Errorf("no API server is named: the file at $KUBECONFIG, %q, is missing or names none, and this "+
			"process is not in a pod", os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	case clientcmd.IsEmptyConfig(err) && file == "":
		return errors.New("no API server is named: there is no kubeconfig at ~/.kube/config, $KUBECONFIG is not set, " +
			"and this process is not in a pod")
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("%s: it names no API server; want a kubeconfig, with clusters, contexts and current-context",
			from)
	case clientcmd.IsContextNotFound(err):
		return fmt.Errorf("%s: it has no context %q", from, cmp.Or(context, "that current-context names"))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such file", from)
	}
	return fmt.Errorf("%s: %w", from, err)
}
