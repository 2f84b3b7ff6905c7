package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/controller"
)

func TestServeFindsTheAPIServerAsKubectlDoesAndASidecarOnlyItsPods(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	const kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: s, cluster: {server: https://named.example}}]\ncontexts: [{name: c, context: {cluster: s}}]\n"
	named := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(named, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env, flag string
		form      controller.Form
		want      string
	}{
		{named, "", controller.Fleet, "https://named.example"},
		{"", named, controller.Fleet, "https://named.example"},
		{"", named, controller.Sidecar, "https://named.example"},
		{named, "", controller.Sidecar, "finding the API server: "},
		{"/does/not/exist", "", controller.Fleet, "finding the API server: "},
	} {
		t.Setenv("KUBECONFIG", c.env)
		o := options{kubeconfig: c.flag, loop: controller.Config{Form: c.form}}
		config, err := o.restConfig()
		got := fmt.Sprint(err)
		if err == nil {
			got = config.Host
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("KUBECONFIG=%q --kubeconfig=%q %v: %s, want %s", c.env, c.flag, c.form, got, c.want)
		}
	}
}
