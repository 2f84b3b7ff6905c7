package chart

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// right is one verb on one resource. namespace is the namespace of the Role that grants it, or "" if a ClusterRole
// grants it for all.
type right struct{ verb, resource, namespace string }

// String returns the right in the notation of RBAC.
func (r right) String() string {
	if r.namespace == "" {
		return r.verb + " " + r.resource
	}
	return r.verb + " " + r.resource + " in " + r.namespace
}

// granted returns the rights that its bindings grant to a ServiceAccount.
func granted(t *testing.T, namespace, account string) map[right]bool {
	t.Helper()
	all, rbac := map[right]bool{}, lab.Client().RbacV1()
	is := func(s rbacv1.Subject) bool { return s.Namespace == namespace && s.Name == account }
	roles, err := rbac.RoleBindings("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, binding := range roles.Items {
		if slices.ContainsFunc(binding.Subjects, is) {
			role, err := rbac.Roles(binding.Namespace).Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
			must(t, err)
			expand(all, role.Rules, binding.Namespace)
		}
	}
	clusterRoles, err := rbac.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, binding := range clusterRoles.Items {
		if slices.ContainsFunc(binding.Subjects, is) {
			role, err := rbac.ClusterRoles().Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
			must(t, err)
			expand(all, role.Rules, "")
		}
	}
	return all
}

func expand(all map[right]bool, rules []rbacv1.PolicyRule, namespace string) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[right{verb, qualified(resource, group), namespace}] = true
				}
			}
		}
	}
}

func qualified(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// allowedBy matches the namespace of the binding that allowed a request in the reason that the authorizer returns.
var allowedBy = regexp.MustCompile(`^RBAC: allowed by (?:ClusterRoleBinding "[^"]+"|RoleBinding "[^"/]+/([^"]+)") of`)

// used returns the rights that a user exercised at the API server, and the requests that were denied.
func used(t *testing.T, user string) (rights map[right]bool, refused []string) {
	t.Helper()
	events, err := lab.Audited()
	must(t, err)
	rights = map[right]bool{}
	for _, e := range events {
		if e.User.Username != user || e.ObjectRef == nil {
			continue // every user may read paths such as /api
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		resource = qualified(resource, e.ObjectRef.APIGroup)
		if e.Annotations["authorization.k8s.io/decision"] != "allow" {
			refused = append(refused, fmt.Sprintf("%s %s in %q", e.Verb, resource, e.ObjectRef.Namespace))
			continue
		}
		if by := allowedBy.FindStringSubmatch(e.Annotations["authorization.k8s.io/reason"]); by != nil {
			rights[right{e.Verb, resource, by[1]}] = true
		}
	}
	slices.Sort(refused)
	return rights, slices.Compact(refused)
}

// excuse is the reason for a right that the tests do not use.
type excuse struct {
	why string
	// mayBeUsed means that the right is used in some runs only.
	mayBeUsed bool
}

// exactly asserts that a ServiceAccount has the rights that it used and the spared ones, and no others. Each spared
// right has a reason. No request is refused but those that try a right that is optional.
func exactly(t *testing.T, namespace, account string, spared map[right]excuse, optional ...string) {
	t.Helper()
	has := granted(t, namespace, account)
	asked, refused := used(t, "system:serviceaccount:"+namespace+":"+account)
	for _, what := range refused {
		if slices.Contains(optional, what) {
			continue
		}
		t.Errorf("%s/%s was refused: %s", namespace, account, what)
	}
	byName := func(a, b right) int { return slices.Compare([]string{a.String()}, []string{b.String()}) }
	for _, r := range slices.SortedFunc(maps.Keys(has), byName) {
		switch excuse, spare := spared[r]; {
		case !asked[r] && !spare:
			t.Errorf("%s/%s has a right that it did not use: %s", namespace, account, r)
		case asked[r] && spare && !excuse.mayBeUsed:
			t.Errorf("%s/%s used %s: it needs no excuse any more", namespace, account, r)
		}
	}
	for r, excuse := range spared {
		if !has[r] {
			t.Errorf("%s is excused (%s) and not granted", r, excuse.why)
		}
	}
	t.Logf("%s/%s: %d rights granted, %d of them used", namespace, account, len(has), len(has)-len(spared))
}

// remains lists the roles and bindings of a release.
func (r *release) remains() (found []string) {
	for _, resource := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		list, err := lab.Dynamic().Resource(rbacv1.SchemeGroupVersion.WithResource(resource)).List(context.Background(),
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + r.name})
		must(r, err)
		for _, object := range list.Items {
			found = append(found, object.GetKind()+" "+object.GetName())
		}
	}
	return found
}
