//go:build tools

// Package tools names the commands whose dependencies go.sum records.
package tools

import _ "github.com/versity/versitygw/cmd/versitygw"
