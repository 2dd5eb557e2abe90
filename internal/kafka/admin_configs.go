package kafka

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// configAnswer is what DescribeConfigs says of one resource.
type configAnswer struct {
	code    sarama.KError
	message string
	values  map[string]string
}

// askConfigs reads settings, by the names of their resources. A broker that
// does not know the request answers so for each of them.
func askConfigs(b *sarama.Broker, resources []*sarama.ConfigResource) (map[string]*configAnswer, error) {
	answers := make(map[string]*configAnswer, len(resources))
	response, err := b.DescribeConfigs(&sarama.DescribeConfigsRequest{Version: 2, Resources: resources})
	if errors.Is(err, sarama.ErrUnsupportedVersion) {
		for _, r := range resources {
			answers[r.Name] = &configAnswer{code: sarama.ErrUnsupportedVersion, message: "the broker does not offer DescribeConfigs"}
		}
		return answers, nil
	}
	if err != nil {
		return nil, err
	}
	for _, r := range response.Resources {
		answer := &configAnswer{code: sarama.KError(r.ErrorCode), message: r.ErrorMsg, values: make(map[string]string, len(r.Configs))}
		for _, entry := range r.Configs {
			answer.values[entry.Name] = entry.Value
		}
		answers[r.Name] = answer
	}
	return answers, nil
}

// configsRefused is why the settings of a thing cannot be read.
func configsRefused(of string, r *configAnswer) string {
	switch r.code {
	case sarama.ErrTopicAuthorizationFailed:
		return fmt.Sprintf("%s cannot be read: the principal lacks the operation DescribeConfigs on the topic", of)
	case sarama.ErrClusterAuthorizationFailed:
		return fmt.Sprintf("%s cannot be read: the principal lacks the operation DescribeConfigs on the cluster", of)
	default:
		return fmt.Sprintf("%s cannot be read: %s", of, refusal(r.code, r.message))
	}
}

// refusal is a broker's error code with what it says about it.
func refusal(code sarama.KError, message string) string {
	text := fmt.Sprintf("%s (%d)", classify(code).name, int16(code))
	if message != "" {
		text += ": " + message
	}
	return text
}
