//go:build tools

// Package tools names the commands whose dependencies go.sum records.
package tools

import (
	_ "github.com/treeverse/lakefs/cmd/lakectl"
	_ "github.com/treeverse/lakefs/cmd/lakefs"
)
