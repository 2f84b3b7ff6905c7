package engine

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

func TestWithoutAnythingInTheEnvironmentTheSecretsAreAsked(t *testing.T) {
	var config gcs.Config
	auth := nodepool.Auth{Required: true, TokenSecret: "llm", TokenKey: "auth_token", TLSSecret: "certs"}
	cluster := nodepool.Cluster{Auth: auth}
	nothing := func(string) string { return "" }
	if err := authenticateAsRay(nothing, &config, &cluster); err != nil || config.Token != nil || config.TLS != nil || cluster.Auth != auth {
		t.Errorf("config %+v, auth %+v, error %v; want all as it was", config, cluster.Auth, err)
	}
}

func TestAMissingTokenOfKubeRayNamesItsFile(t *testing.T) {
	env := rayEnvironment(func(name string) string {
		return map[string]string{"RAY_ENABLE_K8S_TOKEN_AUTH": "true"}[name]
	})
	if _, err := env.token()(t.Context()); err == nil || !strings.Contains(err.Error(), kubeRayTokenFile) {
		t.Errorf("error is %v, want it to name %s", err, kubeRayTokenFile)
	}
}
