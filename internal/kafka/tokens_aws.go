package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-msk-iam-sasl-signer-go/signer"
)

// MSKTokens are tokens for the IAM listeners of an Amazon MSK cluster in the
// region: presigned requests, made without a network once the credentials are
// there. Those come from where the AWS SDK looks for them.
func MSKTokens(region string) *Tokens {
	return NewTokens(func(ctx context.Context) (Token, error) {
		token, expires, err := signer.GenerateAuthToken(ctx, region)
		if err != nil {
			return Token{}, fmt.Errorf("no AWS credentials can be had for AWS_MSK_IAM: %w", err)
		}
		return Token{Value: token, Expires: time.UnixMilli(expires)}, nil
	})
}
