// Command karpenter is Karpenter with its kwok cloud provider, whose stock can run out: the provider of the module has
// every instance type at all times. It belongs to the tests of the dev cluster.
package main

import (
	"fmt"
	"os"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

// main is the module's own kwok/main.go with the stock between Karpenter and the provider.
func main() {
	ctx, op := operator.NewOperator()
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "reading the instance types: %v\n", err)
		os.Exit(1)
	}
	provider := &stock{
		CloudProvider: kwok.NewCloudProvider(ctx, op.GetClient(), types),
		file:          os.Getenv("OUT_OF_STOCK_FILE_PATH"),
		now:           op.Clock.Now,
	}
	decorated := overlay.Decorate(provider, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), decorated)
	op.WithControllers(ctx, controllers.NewControllers(ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder,
		decorated, provider, cluster, op.InstanceTypeStore)...).Start(ctx)
}
