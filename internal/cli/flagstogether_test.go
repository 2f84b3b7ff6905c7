package cli

import (
	"errors"
	"io"
	"testing"

	"github.com/spf13/cobra"
)

func TestFlagsThatExcludeOrNeedEachOther(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--a", "1"}, ""},
		{[]string{"--a", "1", "--b"}, `--a "1" and --b exclude each other: want one of them; see x --help`},
		{[]string{"--a", "1", "--b=false"}, `--a "1" and --b=false exclude each other: want one of them; see x --help`},
		{[]string{"--c", "k"}, `--c "k": want also --d; see x --help`},
		{[]string{"--c", "k", "--d", "l"}, ""},
	} {
		cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true,
			RunE: func(*cobra.Command, []string) error { return nil }}
		cmd.Flags().String("a", "", "")
		cmd.Flags().Bool("b", false, "")
		cmd.Flags().String("c", "", "")
		cmd.Flags().String("d", "", "")
		cmd.MarkFlagsMutuallyExclusive("a", "b")
		cmd.MarkFlagsRequiredTogether("c", "d")
		CheckFlagsTogether(cmd)
		cmd.SetArgs(c.args)
		cmd.SetOut(io.Discard)
		err := cmd.Execute()
		var bad InputError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &bad) || err.Error() != c.want) {
			t.Errorf("%v: got %v, want %s", c.args, err, c.want)
		}
	}
}
