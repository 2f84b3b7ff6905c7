package devcluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

// File names of the audit: the policy in the cluster's directory, and the log among the other logs.
const (
	auditPolicy = "audit-policy.yaml"
	auditLog    = "audit.log"
)

// audit returns the API server's flags that record the requests of some users, and writes their policy.
func (cp *controlPlane) audit() ([]string, error) {
	if len(cp.audited) == 0 {
		return nil, nil
	}
	policy := auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived},
		Rules:      []auditv1.PolicyRule{{Level: auditv1.LevelMetadata, Users: cp.audited}, {Level: auditv1.LevelNone}},
	}
	text, err := yaml.Marshal(policy)
	if err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	file := filepath.Join(cp.dir, auditPolicy)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + file, "--audit-log-path=" + filepath.Join(cp.dir, logsDir, auditLog)}, nil
}

// Audited returns what the API server has recorded of the users of Options.Audit, oldest first.
func (c *Cluster) Audited() ([]auditv1.Event, error) {
	file, err := os.Open(filepath.Join(c.Logs(), auditLog))
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	var events []auditv1.Event
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF { // a line without its end is still being written
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		events = append(events, event)
	}
}
