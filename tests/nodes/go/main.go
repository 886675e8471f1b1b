// The golden cases as a Go program that serves.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

type attempt struct {
	ExecutionID string `json:"execution_id"`
	Workspace   string
	Params      struct{ Do, Text string }
	Cancel      string
}

type answer map[string]any

func channel(variable string) *os.File {
	number, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		panic(variable + " is not set")
	}
	return os.NewFile(uintptr(number), variable)
}

func write(asked attempt, name, text string) {
	if err := os.WriteFile(filepath.Join(asked.Workspace, name), []byte(text), 0o600); err != nil {
		panic(err)
	}
}

func work(asked attempt, events *json.Encoder) answer {
	found := answer{"execution_id": asked.ExecutionID}
	switch asked.Params.Do {
	case "write":
		write(asked, "out.txt", asked.Params.Text)
	case "remove":
		os.Remove(filepath.Join(asked.Workspace, "in.txt"))
	case "temporary":
		write(asked, "left.tmp", "x")
	case "measure":
		events.Encode(map[string]any{
			"execution_id": asked.ExecutionID, "type": "metric", "name": "songs", "value": 3,
			"labels": map[string]string{"kind": "flac"},
		})
	case "fail":
		found["error"] = "no song"
		return found
	case "never":
		found["error"], found["terminal"] = "no song", true
		return found
	case "lie":
		found["result"] = map[string]any{"size": "much"}
		return found
	}
	found["result"] = map[string]any{"size": len(asked.Params.Text)}
	return found
}

func main() {
	lines := bufio.NewScanner(channel("PERAGO_ATTEMPTS"))
	answers, events := json.NewEncoder(channel("PERAGO_ANSWERS")), json.NewEncoder(channel("PERAGO_EVENTS"))
	for lines.Scan() {
		var asked attempt
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if asked.Cancel == "" {
			answers.Encode(work(asked, events))
		}
	}
}
