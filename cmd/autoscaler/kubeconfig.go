package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfig reads the kubeconfig as kubectl does: the file named, KUBECONFIG, the file at home, or the account of the pod. No context is the
// current one.
func kubeconfig(file, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
}

// kubectlConfig finds the API server as kubectl does. Its error is the caller's to mend: bad input.
func kubectlConfig(file string) (*rest.Config, error) {
	config, err := kubeconfig(file, "").ClientConfig()
	if err != nil {
		return nil, badInput{fmt.Errorf("finding the API server: %w; give --kubeconfig", unusable(file, "", err))}
	}
	return config, nil
}

// unusable says of which file a kubeconfig cannot be used, and what would be right.
func unusable(file, context string, err error) error {
	from := "--kubeconfig " + file
	if file == "" {
		from = "the kubeconfig"
	}
	switch {
	case clientcmd.IsEmptyConfig(err) && file == "":
		return errors.New("no API server is named: there is no kubeconfig at $KUBECONFIG or ~/.kube/config, and this is no pod")
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("%s: it names no API server; want a kubeconfig, with clusters, contexts and current-context", from)
	case clientcmd.IsContextNotFound(err):
		return fmt.Errorf("%s: it has no context %q", from, cmp.Or(context, "that current-context names"))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such file", from)
	}
	return fmt.Errorf("%s: %w", from, err)
}
