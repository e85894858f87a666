window.ui = SwaggerUIBundle({
  url: 'api/v1/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
});
