package devcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// operatorUser is the operator's user name at the API server.
const operatorUser = "kuberay-operator"

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// installCRDs creates the resource definitions of a directory, each after a call of change, and waits until the API
// server serves them. It does not apply them, because the annotation of an apply would be longer than the API allows.
func installCRDs(
	ctx context.Context, client dynamic.Interface, dir string, change func(*unstructured.Unstructured) error,
) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("installing resource definitions: none in %s", dir)
	}
	var names []string
	for _, file := range files {
		crd, err := readObject(file)
		if err == nil {
			err = change(crd)
		}
		if err != nil {
			return fmt.Errorf("installing resource definitions: %w", err)
		}
		_, err = client.Resource(crdResource).Create(ctx, crd, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("installing %s: %w", crd.GetName(), err)
		}
		names = append(names, crd.GetName())
	}
	for _, name := range names {
		served := func(ctx context.Context) error { return established(ctx, client, name) }
		if err := poll(ctx, 50*time.Millisecond, served); err != nil {
			return fmt.Errorf("waiting for %s: %w", name, err)
		}
	}
	return nil
}

// readObject reads the one object of a YAML file.
func readObject(file string) (*unstructured.Unstructured, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	err = yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096).Decode(&object.Object)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return object, nil
}

// established returns an error until the API server serves a resource definition.
func established(ctx context.Context, client dynamic.Interface, name string) error {
	crd, err := client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "Established" && condition["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("%s is not established", name)
}

// grantOperator grants the operator exactly the rights in its own manifests, so that what a real cluster forbids fails
// here too.
func grantOperator(ctx context.Context, client kubernetes.Interface, roleFile string) error {
	object, err := os.ReadFile(roleFile)
	if err != nil {
		return fmt.Errorf("granting the operator its role: %w", err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(object), 4096).Decode(&role); err != nil {
		return fmt.Errorf("granting the operator its role: reading %s: %w", roleFile, err)
	}
	// The chart adds it for a batch scheduler (helm-chart/kuberay-operator/templates/_helpers.tpl).
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"scheduling.x-k8s.io"},
		Resources: []string{"podgroups"}, Verbs: []string{"create", "get", "list", "watch"}})
	_, err = client.RbacV1().ClusterRoles().Create(ctx, &role, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("granting the operator its role: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("granting the operator its role: %w", err)
	}
	return nil
}

// defaultsExist returns an error until a pod in the default namespace is accepted and finds the certificate of the API
// server.
func defaultsExist(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err
	}
	_, err := client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	return err
}
