// An SSH client of Go's x/crypto that logs in with the keys of an SSH agent, for tests/interop.
package main

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Arguments: list, or login ADDRESS USER COMMAND.
func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	connection, err := net.Dial("unix", os.Getenv("SSH_AUTH_SOCK"))
	if err != nil {
		return err
	}
	client := agent.NewClient(connection)
	if args[0] == "list" {
		keys, err := client.List()
		for _, key := range keys {
			fmt.Println(ssh.FingerprintSHA256(key), key.Comment)
		}
		return err
	}
	server, err := ssh.Dial("tcp", args[1], &ssh.ClientConfig{
		User: args[2],
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(client.Signers)},
		// The test is about the agent. The server is on loopback.
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		return err
	}
	session, err := server.NewSession()
	if err != nil {
		return err
	}
	output, err := session.Output(args[3])
	os.Stdout.Write(output)
	return err
}
