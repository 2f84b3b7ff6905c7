package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// machineLabel says what a machine is for. The machine of the heads never disappears.
const (
	machineLabel  = "chaos/machine"
	headMachine   = "heads"
	workerMachine = "workers"
	// Machines is how many machines there are for workers.
	Machines = 6
)

// machine returns the name of a machine for workers.
func machine(i int) string { return fmt.Sprintf("machine-%d", i%Machines) }

// addMachines adds the machine of the heads and those of the workers.
func (f *Fleet) addMachines(ctx context.Context) error {
	if err := f.addMachine(ctx, headMachine, headMachine); err != nil {
		return err
	}
	for i := range Machines {
		if err := f.AddMachine(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// AddMachine adds a machine for workers, unless it is there. After an error, it may be there without room.
func (f *Fleet) AddMachine(ctx context.Context, i int) error {
	return f.addMachine(ctx, machine(i), workerMachine)
}

func (f *Fleet) addMachine(ctx context.Context, name, purpose string) error {
	nodes := f.kube.CoreV1().Nodes()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		machineLabel:           purpose,
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}}}
	made, err := nodes.Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = nodes.Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("adding machine %s: %w", name, err)
	}
	if len(made.Status.Allocatable) > 0 {
		return nil
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("10Ti"),
		corev1.ResourcePods:   resource.MustParse("1000"),
		"nvidia.com/gpu":      resource.MustParse("1000"),
	}
	made.Status = corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
		{
			Type:               corev1.NodeReady,
			Status:             corev1.ConditionTrue,
			LastHeartbeatTime:  metav1.Now(),
			LastTransitionTime: metav1.Now(),
		},
	}}
	if _, err = nodes.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("adding machine %s: %w", name, err)
	}
	return nil
}

// RemoveMachine removes a machine for workers. Its pods end with their work.
func (f *Fleet) RemoveMachine(ctx context.Context, i int) error {
	err := f.kube.CoreV1().Nodes().Delete(ctx, machine(i), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing machine %s: %w", machine(i), err)
	}
	return nil
}
