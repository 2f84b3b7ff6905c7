package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// KubeFlags select the API server, with the flags of kubectl.
type KubeFlags struct{ Kubeconfig, context string }

// AddTo adds the flags to a command.
func (f *KubeFlags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "",
		"the kubeconfig file (default: as kubectl finds it, or the pod's service account)")
	flags.StringVar(&f.context, "context", "", "a context of the kubeconfig other than the current one")
}

// client reads the kubeconfig as kubectl does: the given file, KUBECONFIG, the file in the home directory, or the
// pod's service account. An empty context means the current one.
func (f KubeFlags) client() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context})
}

// Config finds the API server as kubectl does. Its error is bad input.
func (f KubeFlags) Config() (*rest.Config, error) {
	config, err := f.client().ClientConfig()
	if err != nil {
		return nil, BadInput(fmt.Errorf("finding the API server: %w", f.unusable(err)))
	}
	return config, nil
}

// unusable says which kubeconfig cannot be used, why, and what would be right.
func (f KubeFlags) unusable(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("it is missing or names no API server, and this process is not in a pod")
	}
	return fmt.Errorf("kubeconfig %s: %w; give --kubeconfig",
		cmp.Or(f.Kubeconfig, os.Getenv(clientcmd.RecommendedConfigPathEnvVar), "~/.kube/config"), err)
}
