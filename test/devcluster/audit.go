package devcluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

// File names of the audit: the policy in the cluster's directory, and the log among the other logs.
const (
	auditPolicy = "audit-policy.yaml"
	auditLog    = "audit.log"
)

// auditMegabytes is so large that the log is never split.
const auditMegabytes = 1 << 14

// audit returns the API server's flags that record requests by some rules and those of some users, and writes the
// policy.
func (cp *controlPlane) audit() ([]string, error) {
	rules := slices.Clone(cp.auditRules)
	if len(cp.audited) > 0 {
		rules = append(rules, auditv1.PolicyRule{Level: auditv1.LevelMetadata, Users: cp.audited})
	}
	if len(rules) == 0 {
		return nil, nil
	}
	policy := auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived},
		Rules:      append(rules, auditv1.PolicyRule{Level: auditv1.LevelNone}),
	}
	text, err := yaml.Marshal(policy)
	if err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	file := filepath.Join(cp.dir, auditPolicy)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + file, "--audit-log-path=" + filepath.Join(cp.dir, logsDir, auditLog),
		"--audit-log-maxsize=" + strconv.Itoa(auditMegabytes)}, nil
}

// AuditLog is the path of the API server's audit log, with one event in each line.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Logs(), auditLog) }

// Audited returns what the API server has recorded by Options.Audit and Options.AuditRules, oldest first.
func (c *Cluster) Audited() ([]auditv1.Event, error) {
	file, err := os.Open(c.AuditLog())
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
