package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/doctor"
)

func TestDoctorTellsAnEmptyNamespaceFromOneThatDoesNotExist(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleDynamicClient(scheme, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}})
	input := doctor.Input{Objects: []doctor.Object{{Kind: "Node"}}}
	there := doctorFlags{scope: doctorScope{Namespace: "ml"}}
	if err := there.requireNamespace(context.Background(), client, input); err != nil {
		t.Errorf("a namespace without RayClusters: %v", err)
	}
	if got := there.missing(input); got != "There is no RayCluster in namespace ml." {
		t.Errorf("it is said %q", got)
	}
	nowhere := doctorFlags{scope: doctorScope{Namespace: "nope"}}
	if err := nowhere.requireNamespace(context.Background(), client, input); !errors.As(err, new(cli.InputError)) || err.Error() != "there is no namespace nope" {
		t.Errorf("a namespace that does not exist: %v", err)
	}
	input.Objects = append(input.Objects, doctor.Object{Kind: "RayCluster"})
	if got := there.missing(input); got != "" {
		t.Errorf("with a RayCluster it is said %q", got)
	}
	var text strings.Builder
	if err := printer.WriterOf("table", printer.Look{}, printer.WriteDoctor)(&text, printer.Doctor{Examined: doctor.Input{Objects: []doctor.Object{{Kind: "Node"}}}, Note: "No RayClusters found."}); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); got != "Nothing found. Looked at 1 Node. No RayClusters found.\n" {
		t.Errorf("the table says %q", got)
	}
}
