package objects

import (
	"context"
	"fmt"
	"maps"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// tokenSeconds is how long a pod's token is valid. The agent does not renew tokens: no dev cluster runs longer.
const tokenSeconds = 7 * 24 * 3600

// Reader reads from the API server at each call.
type Reader struct{ Client kubernetes.Interface }

// ConfigMap returns the keys and values of a ConfigMap.
func (r Reader) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	object, err := r.Client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for key, value := range object.BinaryData {
		values[key] = string(value)
	}
	maps.Copy(values, object.Data)
	return values, nil
}

// Secret returns the keys and decoded values of a Secret.
func (r Reader) Secret(ctx context.Context, namespace, name string) (map[string]string, error) {
	object, err := r.Client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for key, value := range object.Data {
		values[key] = string(value)
	}
	return values, nil
}

// Token requests a token of the pod's service account that is bound to the pod. If the pod names no service account,
// which the ServiceAccount admission would have set, Token requests an unbound token of the default one.
func (r Reader) Token(ctx context.Context, pod *corev1.Pod, audience string) (string, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	} else {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}
	}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	accounts := r.Client.CoreV1().ServiceAccounts(pod.Namespace)
	reply, err := accounts.CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of service account %s/%s: %w", pod.Namespace, account, err)
	}
	return reply.Status.Token, nil
}
